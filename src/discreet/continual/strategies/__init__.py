"""The strategies of a release: each chooses the sums of the stream to which noise is added."""
