"""Second-order learners: ridge regression, AWV, AROW and Newton steps on any feature map."""
