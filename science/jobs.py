"""Jobs of sciax.science."""
