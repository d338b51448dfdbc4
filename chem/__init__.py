"""sciax.chem"""
