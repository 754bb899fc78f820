"""How well clocks are related: simulated and recorded pairs of traces with known relations."""
