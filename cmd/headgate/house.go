package main

import (
	"headgate/internal/control"
	"headgate/internal/metrics"
)

// openHouse makes the house that run and demo serve with.
func openHouse(o houseOptions) (house, error) {
	b := thisBuild()
	c, err := control.New(control.Options{
		Log:        o.log,
		ConfigFile: o.config,
		StateDir:   o.state,
		Build:      metrics.Build{Version: b.Version, Revision: b.Revision},
		Ready:      o.ready,
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}
