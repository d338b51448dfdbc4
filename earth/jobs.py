"""Jobs of sciax.earth."""
