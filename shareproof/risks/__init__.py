"""What users of a cluster's share groups regret later: findings that apply, and configurations."""
