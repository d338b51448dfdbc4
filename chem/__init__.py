"""Molecules and materials: potentials, dynamics, relaxation, property prediction."""
