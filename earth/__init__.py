"""sciax.earth"""
