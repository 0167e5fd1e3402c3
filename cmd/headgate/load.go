package main

import "headgate/internal/config"

// loadPlan reads a configuration and checks it to the end.
func loadPlan(name string, data []byte) (*config.Config, []config.Problem) {
	c, _, problems := config.Load(name, data)
	return c, problems
}
