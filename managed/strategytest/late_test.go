package strategytest

import (
	"testing"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/strategies"
)

// Eager's whole suite runs at night; this part of it runs in every check.
func TestEager_joinLate(t *testing.T) {
	joinLate(t, strategies.Eager(plugintest.Devices(t, 1)))
}
