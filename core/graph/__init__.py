"""sciax.core.graph"""
