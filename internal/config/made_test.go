package config

import "headgate/internal/schema"

// Check tells what does not fit together in a Config that a test has put together.
func Check(c *Config, report *schema.Report) { newChecker(c, report).checkKinds() }
