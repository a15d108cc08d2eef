"""Tests of the package by its public interface."""
