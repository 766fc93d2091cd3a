//! Every property there is, and what becomes of it.

/// A property that changes how we connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MappedProperty {
    /// Its name, as Connector/J (or MariaDB's connector) spells it.
    pub name: &'static str,
    /// What it may be, and what it does.
    pub rule: &'static str,
}

pub(super) const MAPPED: &[MappedProperty] = &[
    MappedProperty {
        name: "sslMode",
        rule: "write DISABLED, PREFERRED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY",
    },
    MappedProperty {
        name: "useSSL",
        rule: "write true or false; false is `sslMode=DISABLED`, true is `sslMode=PREFERRED`",
    },
    MappedProperty { name: "requireSSL", rule: "write true or false; true is `sslMode=REQUIRED`" },
    MappedProperty {
        name: "verifyServerCertificate",
        rule: "write true or false; true is `sslMode=VERIFY_CA`",
    },
    MappedProperty {
        name: "serverSslCert",
        rule: "name a PEM file with the certificate authorities to trust, by its absolute path",
    },
    MappedProperty {
        name: "trustCertificateKeyStoreUrl",
        rule: "name a PEM file, `file:/path/ca.pem`; a Java key store becomes one with `keytool -exportcert -rfc`",
    },
    MappedProperty { name: "trustCertificateKeyStoreType", rule: "write PEM" },
    MappedProperty {
        name: "connectTimeout",
        rule: "write whole milliseconds from 1 to 60000, or 0 for the default bound",
    },
    MappedProperty {
        name: "socketTimeout",
        rule: "write whole milliseconds up to 86400000, or 0 for the default bound",
    },
    MappedProperty { name: "tcpKeepAlive", rule: "write true or false; the default is true" },
    MappedProperty { name: "localSocket", rule: "name a unix socket by its absolute path" },
    MappedProperty { name: "characterEncoding", rule: "write UTF-8, utf8 or utf8mb4" },
];

/// Properties that steer the Java driver and have no meaning for a connection of ours.
pub(super) const IGNORED: &[&str] = &[
    // The session is pinned to utf8mb4 and UTC by the policy's contract, and read back.
    "useUnicode",
    "characterSetResults",
    "connectionCollation",
    "serverTimezone",
    "connectionTimeZone",
    "forceConnectionTimeZoneToSession",
    "useTimezone",
    "useJDBCCompliantTimezoneShift",
    "useLegacyDatetimeCode",
    "cacheDefaultTimeZone",
    "preserveInstants",
    // How Java values are made from rows.
    "zeroDateTimeBehavior",
    "tinyInt1isBit",
    "transformedBitIsBoolean",
    "yearIsDateType",
    "nullCatalogMeansCurrent",
    "nullDatabaseMeansCurrent",
    "nullNamePatternMatchesAll",
    "useInformationSchema",
    "useOldAliasMetadataBehavior",
    "databaseTerm",
    "noDatetimeStringSync",
    "sendFractionalSeconds",
    // Statements go one a packet and a broken connection is never silently replaced, whatever
    // these say.
    "allowMultiQueries",
    "allowLoadLocalInfile",
    "autoReconnect",
    "autoReconnectForPools",
    "failOverReadOnly",
    "maxReconnects",
    "rewriteBatchedStatements",
    "continueBatchOnError",
    "useAffectedRows",
    // Caches and buffers of the Java driver.
    "useServerPrepStmts",
    "cachePrepStmts",
    "prepStmtCacheSize",
    "prepStmtCacheSqlLimit",
    "useCursorFetch",
    "defaultFetchSize",
    "cacheServerConfiguration",
    "cacheResultSetMetadata",
    "cacheCallableStmts",
    "useLocalSessionState",
    "useLocalTransactionState",
    "elideSetAutoCommits",
    "alwaysSendSetIsolation",
    "enableQueryTimeouts",
    "maintainTimeStats",
    "useReadAheadInput",
    "useUnbufferedInput",
    "useCompression",
    "tcpNoDelay",
    "paranoid",
    "dontTrackOpenResources",
    "useSSPSCompatibleTimezoneShift",
    // caching_sha2_password without TLS asks the server for its key; with TLS it need not.
    "allowPublicKeyRetrieval",
    // rustls speaks TLS 1.2 and 1.3 only.
    "enabledTLSProtocols",
    "tlsVersions",
];

/// Properties that are known and must not be obeyed.
pub(super) const REFUSED: &[(&str, &str)] = &[
    ("sessionVariables", "the session is pinned, nothing else may change it"),
    ("initSQL", "the session is pinned, nothing else may change it"),
    ("connectionInitSql", "the session is pinned, nothing else may change it"),
    ("createDatabaseIfNotExist", "a catalog is made by a person, not by connecting"),
    ("clientCertificateKeyStoreUrl", "client certificates are not supported"),
    ("clientCertificateKeyStoreType", "client certificates are not supported"),
    ("socketFactory", "name a unix socket with `localSocket`"),
    ("socksProxyHost", "a proxy between host and target cannot be verified"),
    ("socksProxyPort", "a proxy between host and target cannot be verified"),
    ("allowUrlInLocalInfile", "files are never sent to the server"),
    ("queryInterceptors", "Java classes cannot be run"),
    ("connectionLifecycleInterceptors", "Java classes cannot be run"),
    ("exceptionInterceptors", "Java classes cannot be run"),
    ("authenticationPlugins", "Java classes cannot be run"),
    ("dnsSrv", "one server is named, not a list of them"),
];

/// Properties that carry a user or a secret. Their names alone are enough to stop reading.
pub(super) const CREDENTIALS: &[&str] = &[
    "user",
    "username",
    "password",
    "password1",
    "password2",
    "password3",
    "trustCertificateKeyStorePassword",
    "clientCertificateKeyStorePassword",
];

/// Every property that changes how we connect.
pub fn mapped_properties() -> &'static [MappedProperty] {
    MAPPED
}

/// Every property that is accepted and does nothing.
pub fn ignored_properties() -> &'static [&'static str] {
    IGNORED
}
