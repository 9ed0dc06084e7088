// Package series makes examples of tables whose rows are time steps: windows with a horizon, parts by time, and columns
// of lags and rolling statistics. Fill missing values before windows: Past{Columns: …, Forward: true}.Of(table).
package series
