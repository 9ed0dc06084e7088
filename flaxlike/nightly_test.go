//go:build nightly

package flaxlike_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/strategies"
)

// seeds are how many models each learning test trains.
const seeds = 3

// recallSteps and copySteps are how many each of them makes.
const recallSteps, copySteps = 1500, 1500

var maskedPlaces = []int{5, 8}

func maskedOn(t *testing.T) []strategies.Strategy {
	two, err := strategies.DataParallel(plugintest.Devices(t, 2), strategies.Parallel{})
	require.NoError(t, err)
	return []strategies.Strategy{jit(t), two, strategies.Eager(plugintest.CPU(t))}
}

func fitNetworks(all []string) []string { return all }

const fitSeeds = 5
