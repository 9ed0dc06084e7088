//go:build !nightly

package flaxlike_test

import (
	"testing"

	"github.com/lazo-ml/lazo/strategies"
)

// seeds are how many models each learning test trains.
const seeds = 1

// recallSteps and copySteps are how many each of them makes.
const recallSteps, copySteps = 400, 750

// maskedPlaces are how many places the sequences of Keras's five are padded to.
var maskedPlaces = []int{8}

// maskedOn are the strategies for them.
func maskedOn(t *testing.T) []strategies.Strategy { return []strategies.Strategy{jit(t)} }

// fitNetworks are compared with Keras's, from this number of seeds.
func fitNetworks([]string) []string { return []string{"outputs", "tabular"} }

const fitSeeds = 1
