"""The learned policy: predict the yield of a link from its features and the results of links that share them."""
