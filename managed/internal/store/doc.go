// Package store keeps the values of a managed state ([Store]) and decides who may use them at the same time ([Access]).
// A [Pin] keeps one value while the state changes. [Last] is the last started run, [Remote] a reported array that is
// still on the device, and [Given] are values for later variables.
package store
