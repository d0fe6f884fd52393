module trainyard.io/tools/dex

go 1.26.4

require github.com/dexidp/dex v0.0.0-20260303133905-11d2eeb52b42

replace github.com/dexidp/dex/api/v2 => github.com/dexidp/dex/api/v2 v2.4.0
