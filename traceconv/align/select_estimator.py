"""Names that move to other modules."""

from traceconv.align.estimators import estimate_pair
from traceconv.align.inputs import ClockInput as Side
from traceconv.align.pairs import PairEstimate, is_accepted, stated_outer

__all__ = ["PairEstimate", "Side", "estimate_pair", "is_accepted", "stated_outer"]
