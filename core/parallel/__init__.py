"""sciax.core.parallel"""
