"""Jobs of sciax.elec."""
