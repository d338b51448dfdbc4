"""sciax.quantum"""
