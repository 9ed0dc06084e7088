package memstore_test

import (
	"testing"

	"github.com/lazo-ml/lazo/checkpoint/storetest"
	"github.com/lazo-ml/lazo/internal/memstore"
)

func TestMemory(t *testing.T) { storetest.Run(t, &memstore.Memory{}) }

func TestFaultyWithoutFaults(t *testing.T) {
	storetest.Run(t, &memstore.Faulty{Store: &memstore.Memory{}})
}
