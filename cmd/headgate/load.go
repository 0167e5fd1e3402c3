package main

import (
	"os"

	"headgate/internal/config"
	"headgate/internal/plan"
	"headgate/internal/plan/inputs"
	"headgate/internal/store"
	"headgate/internal/store/local"
)

// loadPlan reads a configuration and checks it to the end: what its values and
// objects say, and whether two routes want the same requests. The caller
// retires the plan. State names the state directory whose keys it reads, "" for
// none; nothing is written there.
func loadPlan(documents config.Documents, state string) (*plan.Plan, []config.Problem) {
	p, problems, _ := loadWithNotes(documents, state)
	return p, problems
}

// loadWithNotes is loadPlan for who wants to know what is a bad idea, too.
func loadWithNotes(documents config.Documents, state string) (*plan.Plan, []config.Problem, []config.Problem) {
	c, doc, problems := config.LoadDocuments(documents, nil)
	if len(problems) > 0 {
		return nil, problems, nil
	}
	var values store.Values
	if state != "" {
		values = local.Files{Dir: state, Key: os.Getenv(keyVariable)}
	}
	set := inputs.NewLoader(inputs.Options{Values: values}).Prepare(c, documents.Dir)
	defer set.Cancel()
	p, problems := plan.Compile(c, nil, plan.House{Values: values, Inputs: set}, doc.Report())
	return p, problems, doc.Notes()
}
