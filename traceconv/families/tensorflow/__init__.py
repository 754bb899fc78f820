"""TensorFlow and JAX: XPlane files and the profiler's Chrome JSON."""
