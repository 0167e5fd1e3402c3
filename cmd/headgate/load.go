package main

import (
	"fmt"
	"os"
	"strings"

	"headgate/internal/config"
	"headgate/internal/exchange"
	"headgate/internal/plan"
	"headgate/internal/plan/inputs"
	"headgate/internal/schema"
	"headgate/internal/store"
	"headgate/internal/store/local"
)

// loadPlan reads a configuration and validates all of it: values, objects, and whether two
// routes match the same requests. The caller retires the plan. State is the state directory
// whose keys it reads, "" for none; nothing is written there.
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
	notes := doc.Notes()
	if p != nil {
		for _, n := range p.Notes() {
			notes = append(notes, noteOf(n))
		}
	}
	return p, problems, notes
}

// noteOf converts a note of a plan into the form of a problem in a document: the port or
// certificate, the text with its values, and the remedy.
func noteOf(n exchange.Note) config.Problem {
	var out config.Problem
	var details []string
	for i := 0; i+1 < len(n.Attrs); i += 2 {
		key, value := fmt.Sprint(n.Attrs[i]), fmt.Sprint(n.Attrs[i+1])
		switch {
		case key == "remedy":
			out.Remedy = value
		case key == "port" && out.Field == "":
			out.Field, out.Object = schema.JoinPath("ports", value), "port "+value
		default:
			details = append(details, key+" "+value)
		}
	}
	if out.What = n.Text; len(details) > 0 {
		out.What += " (" + strings.Join(details, ", ") + ")"
	}
	return out
}
