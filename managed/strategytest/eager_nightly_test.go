//go:build nightly

package strategytest_test

import (
	"testing"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed/strategytest"
	"github.com/lazo-ml/lazo/strategies"
)

// Operation by operation it takes as long as all others together.
func TestEager(t *testing.T) {
	strategytest.Run(t, func(t *testing.T) strategies.Strategy { return strategies.Eager(plugintest.Devices(t, 1)) })
}
