"""Identify languages and measure how well a text fits one."""
