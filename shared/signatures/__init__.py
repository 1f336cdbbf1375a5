"""Electronic signatures: decisions that a person signs with a recent sign-in and a stated meaning."""
