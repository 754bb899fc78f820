"""MXNet: profiles and printed tables."""
