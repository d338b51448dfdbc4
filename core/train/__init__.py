"""sciax.core.train"""
