"""Record five steps of a JAX function on a GPU: python jax_steps.py FOLDER."""

import sys

import jax
import jax.numpy as jnp


@jax.jit
def layer(x: jax.Array, weights: jax.Array) -> jax.Array:
    for _ in range(4):
        x = jax.nn.relu(x @ weights) / 30
    return x


x, weights = jnp.ones((512, 512)), jnp.ones((512, 512))
layer(x, weights).block_until_ready()
with jax.profiler.trace(sys.argv[1], create_perfetto_trace=True):
    for step in range(5):
        with jax.profiler.StepTraceAnnotation("train", step_num=step):
            with jax.profiler.TraceAnnotation("my layer"):
                x = layer(x, weights)
            x.block_until_ready()
