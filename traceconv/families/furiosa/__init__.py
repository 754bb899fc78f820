"""FuriosaAI: traces and tables of the NPU runtime."""
