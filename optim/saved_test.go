package optim_test

// withoutUpdates leaves out the one variable that GoMLX's Adam does not have.
func withoutUpdates(name string) string {
	if name == "/optimizers/updates" {
		return ""
	}
	return name
}
