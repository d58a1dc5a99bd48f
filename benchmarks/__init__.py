"""Speed, told as ratios of what alternates in one run; nothing here is a test."""
