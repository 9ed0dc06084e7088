package managed

import (
	"strconv"

	"github.com/lazo-ml/lazo/checkpoint"
)

var _ checkpoint.Versioned = (*State)(nil)

// Versions says what the state runs on: "plugin", its platform and versions, and "devices", their number. A checkpoint of a run
// keeps it, and runs.Resume tells what is another.
func (s *State) Versions() map[string]string {
	strategy := s.Strategy()
	p := strategy.Runtime().Plugin()
	plugin := p.Kind
	if p.Version != "" {
		plugin += " " + p.Version
	}
	if p.API != "" {
		plugin += ", PJRT API " + p.API
	}
	return map[string]string{"plugin": plugin, "devices": strconv.Itoa(strategy.NumDevices())}
}
