// The OpenTelemetry Collector with only what the platform's logs need: files of pods in, a queue on the node's disk,
// objects of the store out. See docs/decisions/0025-logs.md.
package main

import (
	"log"
	"os"
	"runtime/debug"
	"strconv"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/healthcheckextension"
	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	"github.com/open-telemetry/opentelemetry-collector-contrib/receiver/filelogreceiver"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
)

// Set by the build.
var version = "0"

func factories() (otelcol.Factories, error) {
	var made otelcol.Factories
	var err error
	if made.Receivers, err = otelcol.MakeFactoryMap[receiver.Factory](filelogreceiver.NewFactory()); err != nil {
		return made, err
	}
	if made.Exporters, err = otelcol.MakeFactoryMap[exporter.Factory](newFactory()); err != nil {
		return made, err
	}
	made.Extensions, err = otelcol.MakeFactoryMap[extension.Factory](
		filestorage.NewFactory(), healthcheckextension.NewFactory())
	made.Telemetry = otelconftelemetry.NewFactory()
	return made, err
}

// bound keeps the heap below four fifths of the pod's memory limit, by collecting garbage more often.
func bound(limit string) {
	if bytes, err := strconv.ParseInt(limit, 10, 64); err == nil && bytes > 0 {
		debug.SetMemoryLimit(bytes / 5 * 4)
	}
}

func main() {
	bound(os.Getenv("MEMORY_LIMIT"))
	command := otelcol.NewCommand(otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "otel-collector", Description: "Logs of pods to the store", Version: version},
		Factories: factories,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			ProviderFactories: []confmap.ProviderFactory{fileprovider.NewFactory()},
			DefaultScheme:     "file",
		}},
	})
	if err := command.Execute(); err != nil {
		log.Fatal(err)
	}
}
