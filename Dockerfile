# docker build -t hone .                                   hone with git
# docker build -t hone --build-arg BASE=golang:1.26 .      and with what your check needs; alpine and Debian images work
#
# docker run --rm -v "$PWD:/work" -v hone-state:/home/hone/.local/state --user "$(id -u):$(id -g)" \
#     -e GEMINI_API_KEY hone fix --check "go test ./..."
#
# docs/containers.md explains the volume, and which walls there are inside a container.
ARG GO=golang:1.26
ARG BASE=alpine:3.22

FROM ${GO} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=devel
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.Version=$VERSION" -o /hone ./cmd/hone

FROM ${BASE}
RUN if command -v apk >/dev/null; then \
        apk add --no-cache bash ca-certificates git; \
    else \
        apt-get update && apt-get install -y --no-install-recommends bash ca-certificates git && rm -rf /var/lib/apt/lists/*; \
    fi
# Any user may be given with --user, and needs a home and a state directory.
RUN mkdir -p /work /home/hone/.local/state && chmod 1777 /work /home/hone /home/hone/.local /home/hone/.local/state
ENV HOME=/home/hone
COPY --from=build /hone /usr/local/bin/hone
USER 1000:1000
WORKDIR /work
ENTRYPOINT ["hone"]
