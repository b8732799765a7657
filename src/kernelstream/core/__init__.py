"""The lowest layer: arrays in, arrays out. What every pass, map and reader is made of."""
