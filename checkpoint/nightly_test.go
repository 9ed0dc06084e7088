//go:build nightly

package checkpoint_test

import "github.com/lazo-ml/lazo/checkpoint"

func init() {
	kills = 1000
	clones = 24
	payloadFlips = 10_000
	sequences = 10_000
	hostileSize = checkpoint.ManifestLimit - 10_000
}
