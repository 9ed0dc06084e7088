package storetest_test

import (
	"testing"

	"github.com/lazo-ml/lazo/checkpoint/storetest"
)

func TestMemory(t *testing.T) { storetest.Run(t, &storetest.Memory{}) }

func TestFaultyWithoutFaults(t *testing.T) {
	storetest.Run(t, &storetest.Faulty{Store: &storetest.Memory{}})
}
