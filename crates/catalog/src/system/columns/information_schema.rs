//! Columns of `information_schema`, as PostgreSQL 18 has them; domains are shown as their base
//! types.

use crate::system::relations;

relations! {
    INFORMATION_SCHEMA;
    12455 administrable_role_authorizations {
        grantee: NAME, role_name: NAME, is_grantable: VARCHAR,
    }
    12450 applicable_roles in info_privilege {
        grantee: NAME, role_name: NAME, is_grantable: VARCHAR,
    }
    12459 attributes {
        udt_catalog: NAME, udt_schema: NAME, udt_name: NAME, attribute_name: NAME,
        ordinal_position: INT4, attribute_default: VARCHAR, is_nullable: VARCHAR,
        data_type: VARCHAR, character_maximum_length: INT4, character_octet_length: INT4,
        character_set_catalog: NAME, character_set_schema: NAME, character_set_name: NAME,
        collation_catalog: NAME, collation_schema: NAME, collation_name: NAME,
        numeric_precision: INT4, numeric_precision_radix: INT4, numeric_scale: INT4,
        datetime_precision: INT4, interval_type: VARCHAR, interval_precision: INT4,
        attribute_udt_catalog: NAME, attribute_udt_schema: NAME, attribute_udt_name: NAME,
        scope_catalog: NAME, scope_schema: NAME, scope_name: NAME, maximum_cardinality: INT4,
        dtd_identifier: NAME, is_derived_reference_attribute: VARCHAR,
    }
    12464 character_sets in info_relation {
        character_set_catalog: NAME, character_set_schema: NAME, character_set_name: NAME,
        character_repertoire: NAME, form_of_use: NAME, default_collate_catalog: NAME,
        default_collate_schema: NAME, default_collate_name: NAME,
    }
    12469 check_constraint_routine_usage {
        constraint_catalog: NAME, constraint_schema: NAME, constraint_name: NAME,
        specific_catalog: NAME, specific_schema: NAME, specific_name: NAME,
    }
    12474 check_constraints in info_constraint {
        constraint_catalog: NAME, constraint_schema: NAME, constraint_name: NAME,
        check_clause: VARCHAR,
    }
    12484 collation_character_set_applicability in info_relation {
        collation_catalog: NAME, collation_schema: NAME, collation_name: NAME,
        character_set_catalog: NAME, character_set_schema: NAME, character_set_name: NAME,
    }
    12479 collations in info_relation {
        collation_catalog: NAME, collation_schema: NAME, collation_name: NAME,
        pad_attribute: VARCHAR,
    }
    12489 column_column_usage in info_relation {
        table_catalog: NAME, table_schema: NAME, table_name: NAME, column_name: NAME,
        dependent_column: NAME,
    }
    12494 column_domain_usage in domain {
        domain_catalog: NAME, domain_schema: NAME, domain_name: NAME, table_catalog: NAME,
        table_schema: NAME, table_name: NAME, column_name: NAME,
    }
    12716 column_options {
        table_catalog: NAME, table_schema: NAME, table_name: NAME, column_name: NAME,
        option_name: NAME, option_value: VARCHAR,
    }
    12499 column_privileges in info_privilege {
        grantor: NAME, grantee: NAME, table_catalog: NAME, table_schema: NAME, table_name: NAME,
        column_name: NAME, privilege_type: VARCHAR, is_grantable: VARCHAR,
    }
    12504 column_udt_usage in info_relation {
        udt_catalog: NAME, udt_schema: NAME, udt_name: NAME, table_catalog: NAME,
        table_schema: NAME, table_name: NAME, column_name: NAME,
    }
    12509 columns in info_relation {
        table_catalog: NAME, table_schema: NAME, table_name: NAME, column_name: NAME,
        ordinal_position: INT4, column_default: VARCHAR, is_nullable: VARCHAR, data_type: VARCHAR,
        character_maximum_length: INT4, character_octet_length: INT4, numeric_precision: INT4,
        numeric_precision_radix: INT4, numeric_scale: INT4, datetime_precision: INT4,
        interval_type: VARCHAR, interval_precision: INT4, character_set_catalog: NAME,
        character_set_schema: NAME, character_set_name: NAME, collation_catalog: NAME,
        collation_schema: NAME, collation_name: NAME, domain_catalog: NAME, domain_schema: NAME,
        domain_name: NAME, udt_catalog: NAME, udt_schema: NAME, udt_name: NAME, scope_catalog: NAME,
        scope_schema: NAME, scope_name: NAME, maximum_cardinality: INT4, dtd_identifier: NAME,
        is_self_referencing: VARCHAR, is_identity: VARCHAR, identity_generation: VARCHAR,
        identity_start: VARCHAR, identity_increment: VARCHAR, identity_maximum: VARCHAR,
        identity_minimum: VARCHAR, identity_cycle: VARCHAR, is_generated: VARCHAR,
        generation_expression: VARCHAR, is_updatable: VARCHAR,
    }
    12514 constraint_column_usage in info_constraint {
        table_catalog: NAME, table_schema: NAME, table_name: NAME, column_name: NAME,
        constraint_catalog: NAME, constraint_schema: NAME, constraint_name: NAME,
    }
    12519 constraint_table_usage in info_constraint {
        table_catalog: NAME, table_schema: NAME, table_name: NAME, constraint_catalog: NAME,
        constraint_schema: NAME, constraint_name: NAME,
    }
    12524 domain_constraints in domain {
        constraint_catalog: NAME, constraint_schema: NAME, constraint_name: NAME,
        domain_catalog: NAME, domain_schema: NAME, domain_name: NAME, is_deferrable: VARCHAR,
        initially_deferred: VARCHAR,
    }
    12529 domain_udt_usage in domain {
        udt_catalog: NAME, udt_schema: NAME, udt_name: NAME, domain_catalog: NAME,
        domain_schema: NAME, domain_name: NAME,
    }
    12533 domains in domain {
        domain_catalog: NAME, domain_schema: NAME, domain_name: NAME, data_type: VARCHAR,
        character_maximum_length: INT4, character_octet_length: INT4, character_set_catalog: NAME,
        character_set_schema: NAME, character_set_name: NAME, collation_catalog: NAME,
        collation_schema: NAME, collation_name: NAME, numeric_precision: INT4,
        numeric_precision_radix: INT4, numeric_scale: INT4, datetime_precision: INT4,
        interval_type: VARCHAR, interval_precision: INT4, domain_default: VARCHAR,
        udt_catalog: NAME, udt_schema: NAME, udt_name: NAME, scope_catalog: NAME,
        scope_schema: NAME, scope_name: NAME, maximum_cardinality: INT4, dtd_identifier: NAME,
    }
    12538 enabled_roles in info_privilege { role_name: NAME }
    12724 foreign_data_wrapper_options {
        foreign_data_wrapper_catalog: NAME, foreign_data_wrapper_name: NAME, option_name: NAME,
        option_value: VARCHAR,
    }
    12728 foreign_data_wrappers {
        foreign_data_wrapper_catalog: NAME, foreign_data_wrapper_name: NAME,
        authorization_identifier: NAME, library_name: VARCHAR,
        foreign_data_wrapper_language: VARCHAR,
    }
    12736 foreign_server_options {
        foreign_server_catalog: NAME, foreign_server_name: NAME, option_name: NAME,
        option_value: VARCHAR,
    }
    12740 foreign_servers {
        foreign_server_catalog: NAME, foreign_server_name: NAME, foreign_data_wrapper_catalog: NAME,
        foreign_data_wrapper_name: NAME, foreign_server_type: VARCHAR,
        foreign_server_version: VARCHAR, authorization_identifier: NAME,
    }
    12749 foreign_table_options {
        foreign_table_catalog: NAME, foreign_table_schema: NAME, foreign_table_name: NAME,
        option_name: NAME, option_value: VARCHAR,
    }
    12753 foreign_tables {
        foreign_table_catalog: NAME, foreign_table_schema: NAME, foreign_table_name: NAME,
        foreign_server_catalog: NAME, foreign_server_name: NAME,
    }
    12441 information_schema_catalog_name in info_relation { catalog_name: NAME }
    12542 key_column_usage in info_constraint {
        constraint_catalog: NAME, constraint_schema: NAME, constraint_name: NAME,
        table_catalog: NAME, table_schema: NAME, table_name: NAME, column_name: NAME,
        ordinal_position: INT4, position_in_unique_constraint: INT4,
    }
    12547 parameters in info_routine {
        specific_catalog: NAME, specific_schema: NAME, specific_name: NAME, ordinal_position: INT4,
        parameter_mode: VARCHAR, is_result: VARCHAR, as_locator: VARCHAR, parameter_name: NAME,
        data_type: VARCHAR, character_maximum_length: INT4, character_octet_length: INT4,
        character_set_catalog: NAME, character_set_schema: NAME, character_set_name: NAME,
        collation_catalog: NAME, collation_schema: NAME, collation_name: NAME,
        numeric_precision: INT4, numeric_precision_radix: INT4, numeric_scale: INT4,
        datetime_precision: INT4, interval_type: VARCHAR, interval_precision: INT4,
        udt_catalog: NAME, udt_schema: NAME, udt_name: NAME, scope_catalog: NAME,
        scope_schema: NAME, scope_name: NAME, maximum_cardinality: INT4, dtd_identifier: NAME,
        parameter_default: VARCHAR,
    }
    12552 referential_constraints in info_constraint {
        constraint_catalog: NAME, constraint_schema: NAME, constraint_name: NAME,
        unique_constraint_catalog: NAME, unique_constraint_schema: NAME,
        unique_constraint_name: NAME, match_option: VARCHAR, update_rule: VARCHAR,
        delete_rule: VARCHAR,
    }
    12557 role_column_grants in info_privilege {
        grantor: NAME, grantee: NAME, table_catalog: NAME, table_schema: NAME, table_name: NAME,
        column_name: NAME, privilege_type: VARCHAR, is_grantable: VARCHAR,
    }
    12571 role_routine_grants in info_routine {
        grantor: NAME, grantee: NAME, specific_catalog: NAME, specific_schema: NAME,
        specific_name: NAME, routine_catalog: NAME, routine_schema: NAME, routine_name: NAME,
        privilege_type: VARCHAR, is_grantable: VARCHAR,
    }
    12634 role_table_grants in info_privilege {
        grantor: NAME, grantee: NAME, table_catalog: NAME, table_schema: NAME, table_name: NAME,
        privilege_type: VARCHAR, is_grantable: VARCHAR, with_hierarchy: VARCHAR,
    }
    12663 role_udt_grants {
        grantor: NAME, grantee: NAME, udt_catalog: NAME, udt_schema: NAME, udt_name: NAME,
        privilege_type: VARCHAR, is_grantable: VARCHAR,
    }
    12672 role_usage_grants in info_privilege {
        grantor: NAME, grantee: NAME, object_catalog: NAME, object_schema: NAME, object_name: NAME,
        object_type: VARCHAR, privilege_type: VARCHAR, is_grantable: VARCHAR,
    }
    12561 routine_column_usage {
        specific_catalog: NAME, specific_schema: NAME, specific_name: NAME, routine_catalog: NAME,
        routine_schema: NAME, routine_name: NAME, table_catalog: NAME, table_schema: NAME,
        table_name: NAME, column_name: NAME,
    }
    12566 routine_privileges in info_routine {
        grantor: NAME, grantee: NAME, specific_catalog: NAME, specific_schema: NAME,
        specific_name: NAME, routine_catalog: NAME, routine_schema: NAME, routine_name: NAME,
        privilege_type: VARCHAR, is_grantable: VARCHAR,
    }
    12575 routine_routine_usage {
        specific_catalog: NAME, specific_schema: NAME, specific_name: NAME, routine_catalog: NAME,
        routine_schema: NAME, routine_name: NAME,
    }
    12580 routine_sequence_usage {
        specific_catalog: NAME, specific_schema: NAME, specific_name: NAME, routine_catalog: NAME,
        routine_schema: NAME, routine_name: NAME, sequence_catalog: NAME, sequence_schema: NAME,
        sequence_name: NAME,
    }
    12585 routine_table_usage {
        specific_catalog: NAME, specific_schema: NAME, specific_name: NAME, routine_catalog: NAME,
        routine_schema: NAME, routine_name: NAME, table_catalog: NAME, table_schema: NAME,
        table_name: NAME,
    }
    12590 routines in info_routine {
        specific_catalog: NAME, specific_schema: NAME, specific_name: NAME, routine_catalog: NAME,
        routine_schema: NAME, routine_name: NAME, routine_type: VARCHAR, module_catalog: NAME,
        module_schema: NAME, module_name: NAME, udt_catalog: NAME, udt_schema: NAME, udt_name: NAME,
        data_type: VARCHAR, character_maximum_length: INT4, character_octet_length: INT4,
        character_set_catalog: NAME, character_set_schema: NAME, character_set_name: NAME,
        collation_catalog: NAME, collation_schema: NAME, collation_name: NAME,
        numeric_precision: INT4, numeric_precision_radix: INT4, numeric_scale: INT4,
        datetime_precision: INT4, interval_type: VARCHAR, interval_precision: INT4,
        type_udt_catalog: NAME, type_udt_schema: NAME, type_udt_name: NAME, scope_catalog: NAME,
        scope_schema: NAME, scope_name: NAME, maximum_cardinality: INT4, dtd_identifier: NAME,
        routine_body: VARCHAR, routine_definition: VARCHAR, external_name: VARCHAR,
        external_language: VARCHAR, parameter_style: VARCHAR, is_deterministic: VARCHAR,
        sql_data_access: VARCHAR, is_null_call: VARCHAR, sql_path: VARCHAR,
        schema_level_routine: VARCHAR, max_dynamic_result_sets: INT4, is_user_defined_cast: VARCHAR,
        is_implicitly_invocable: VARCHAR, security_type: VARCHAR, to_sql_specific_catalog: NAME,
        to_sql_specific_schema: NAME, to_sql_specific_name: NAME, as_locator: VARCHAR,
        created: TIMESTAMPTZ, last_altered: TIMESTAMPTZ, new_savepoint_level: VARCHAR,
        is_udt_dependent: VARCHAR, result_cast_from_data_type: VARCHAR,
        result_cast_as_locator: VARCHAR, result_cast_char_max_length: INT4,
        result_cast_char_octet_length: INT4, result_cast_char_set_catalog: NAME,
        result_cast_char_set_schema: NAME, result_cast_char_set_name: NAME,
        result_cast_collation_catalog: NAME, result_cast_collation_schema: NAME,
        result_cast_collation_name: NAME, result_cast_numeric_precision: INT4,
        result_cast_numeric_precision_radix: INT4, result_cast_numeric_scale: INT4,
        result_cast_datetime_precision: INT4, result_cast_interval_type: VARCHAR,
        result_cast_interval_precision: INT4, result_cast_type_udt_catalog: NAME,
        result_cast_type_udt_schema: NAME, result_cast_type_udt_name: NAME,
        result_cast_scope_catalog: NAME, result_cast_scope_schema: NAME,
        result_cast_scope_name: NAME, result_cast_maximum_cardinality: INT4,
        result_cast_dtd_identifier: NAME,
    }
    12595 schemata in info_relation {
        catalog_name: NAME, schema_name: NAME, schema_owner: NAME,
        default_character_set_catalog: NAME, default_character_set_schema: NAME,
        default_character_set_name: NAME, sql_path: VARCHAR,
    }
    12599 sequences in info_relation {
        sequence_catalog: NAME, sequence_schema: NAME, sequence_name: NAME, data_type: VARCHAR,
        numeric_precision: INT4, numeric_precision_radix: INT4, numeric_scale: INT4,
        start_value: VARCHAR, minimum_value: VARCHAR, maximum_value: VARCHAR, increment: VARCHAR,
        cycle_option: VARCHAR,
    }
    12624 table_constraints in info_constraint {
        constraint_catalog: NAME, constraint_schema: NAME, constraint_name: NAME,
        table_catalog: NAME, table_schema: NAME, table_name: NAME, constraint_type: VARCHAR,
        is_deferrable: VARCHAR, initially_deferred: VARCHAR, enforced: VARCHAR,
        nulls_distinct: VARCHAR,
    }
    12629 table_privileges in info_privilege {
        grantor: NAME, grantee: NAME, table_catalog: NAME, table_schema: NAME, table_name: NAME,
        privilege_type: VARCHAR, is_grantable: VARCHAR, with_hierarchy: VARCHAR,
    }
    12638 tables in info_relation {
        table_catalog: NAME, table_schema: NAME, table_name: NAME, table_type: VARCHAR,
        self_referencing_column_name: NAME, reference_generation: VARCHAR,
        user_defined_type_catalog: NAME, user_defined_type_schema: NAME,
        user_defined_type_name: NAME, is_insertable_into: VARCHAR, is_typed: VARCHAR,
        commit_action: VARCHAR,
    }
    12643 transforms {
        udt_catalog: NAME, udt_schema: NAME, udt_name: NAME, specific_catalog: NAME,
        specific_schema: NAME, specific_name: NAME, group_name: NAME, transform_type: VARCHAR,
    }
    12648 triggered_update_columns in trigger {
        trigger_catalog: NAME, trigger_schema: NAME, trigger_name: NAME, event_object_catalog: NAME,
        event_object_schema: NAME, event_object_table: NAME, event_object_column: NAME,
    }
    12653 triggers in trigger {
        trigger_catalog: NAME, trigger_schema: NAME, trigger_name: NAME,
        event_manipulation: VARCHAR, event_object_catalog: NAME, event_object_schema: NAME,
        event_object_table: NAME, action_order: INT4, action_condition: VARCHAR,
        action_statement: VARCHAR, action_orientation: VARCHAR, action_timing: VARCHAR,
        action_reference_old_table: NAME, action_reference_new_table: NAME,
        action_reference_old_row: NAME, action_reference_new_row: NAME, created: TIMESTAMPTZ,
    }
    12658 udt_privileges {
        grantor: NAME, grantee: NAME, udt_catalog: NAME, udt_schema: NAME, udt_name: NAME,
        privilege_type: VARCHAR, is_grantable: VARCHAR,
    }
    12667 usage_privileges in info_privilege {
        grantor: NAME, grantee: NAME, object_catalog: NAME, object_schema: NAME, object_name: NAME,
        object_type: VARCHAR, privilege_type: VARCHAR, is_grantable: VARCHAR,
    }
    12676 user_defined_types {
        user_defined_type_catalog: NAME, user_defined_type_schema: NAME,
        user_defined_type_name: NAME, user_defined_type_category: VARCHAR, is_instantiable: VARCHAR,
        is_final: VARCHAR, ordering_form: VARCHAR, ordering_category: VARCHAR,
        ordering_routine_catalog: NAME, ordering_routine_schema: NAME, ordering_routine_name: NAME,
        reference_type: VARCHAR, data_type: VARCHAR, character_maximum_length: INT4,
        character_octet_length: INT4, character_set_catalog: NAME, character_set_schema: NAME,
        character_set_name: NAME, collation_catalog: NAME, collation_schema: NAME,
        collation_name: NAME, numeric_precision: INT4, numeric_precision_radix: INT4,
        numeric_scale: INT4, datetime_precision: INT4, interval_type: VARCHAR,
        interval_precision: INT4, source_dtd_identifier: NAME, ref_dtd_identifier: NAME,
    }
    12762 user_mapping_options {
        authorization_identifier: NAME, foreign_server_catalog: NAME, foreign_server_name: NAME,
        option_name: NAME, option_value: VARCHAR,
    }
    12767 user_mappings {
        authorization_identifier: NAME, foreign_server_catalog: NAME, foreign_server_name: NAME,
    }
    12681 view_column_usage in info_relation {
        view_catalog: NAME, view_schema: NAME, view_name: NAME, table_catalog: NAME,
        table_schema: NAME, table_name: NAME, column_name: NAME,
    }
    12686 view_routine_usage {
        table_catalog: NAME, table_schema: NAME, table_name: NAME, specific_catalog: NAME,
        specific_schema: NAME, specific_name: NAME,
    }
    12691 view_table_usage in info_relation {
        view_catalog: NAME, view_schema: NAME, view_name: NAME, table_catalog: NAME,
        table_schema: NAME, table_name: NAME,
    }
    12696 views in info_relation {
        table_catalog: NAME, table_schema: NAME, table_name: NAME, view_definition: VARCHAR,
        check_option: VARCHAR, is_updatable: VARCHAR, is_insertable_into: VARCHAR,
        is_trigger_updatable: VARCHAR, is_trigger_deletable: VARCHAR,
        is_trigger_insertable_into: VARCHAR,
    }
}
