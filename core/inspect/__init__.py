"""sciax.core.inspect"""
