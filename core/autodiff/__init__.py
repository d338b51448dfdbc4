"""sciax.core.autodiff"""
