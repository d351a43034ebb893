"""What rules work out beside the replay: what is stored, which key is lost, which list would serve."""
