"""Jobs of sciax.chem."""
