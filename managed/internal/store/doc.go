// Package store keeps the values of a managed state ([Store]) and decides who may use them ([Access]). A [Pin] keeps a
// value while the state changes. [Last] is the last started run, [Remote] a reported array on the device. [Given] are
// values for later variables.
package store
