"""Jobs of sciax.quantum."""
