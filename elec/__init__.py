"""sciax.elec"""
