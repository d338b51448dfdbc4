"""sciax.science"""
