"""Golden bytes: our wire code beside the Java classes of the release it speaks to."""
