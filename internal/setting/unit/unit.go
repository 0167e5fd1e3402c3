// Package unit holds the scalars of settings: Duration, Size and Switch. Each
// reads and writes the form that people use in a configuration ("30s",
// "10MiB", "true") and costs no more than the number behind it.
//
// It does not know about bounds or defaults; internal/schema reads those from
// the tags of the field that holds the scalar.
package unit
